package cli_test

// lines is how many lines the file has that all of them edit. Git takes changes of lines that are
// next to each other for a conflict, so they edit each fourth only.
const lines = 48
