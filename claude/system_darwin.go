package claude

// inKeychain reports that a login may be in the keychain, which netsky does not read.
const inKeychain = true

// managedDir is the directory of the machine's administrator's files.
const managedDir = "/Library/Application Support/ClaudeCode"
