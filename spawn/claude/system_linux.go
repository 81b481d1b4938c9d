package claude

// inKeychain reports that a login may be in the keychain, which netsky does not read.
const inKeychain = false

// managedSettings is the settings file of the machine's administrator.
const managedSettings = "/etc/claude-code/managed-settings.json"
