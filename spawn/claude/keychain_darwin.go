package claude

// inKeychain says that a login may be where we don't look.
const inKeychain = true
