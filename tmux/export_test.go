package tmux

// Unvis is what Capture undoes of tmux's escapes, for its fuzz test.
var Unvis = unvis
