package claude

// inKeychain reports that a login may be in the keychain, which netsky does not read.
const inKeychain = true

// managedSettings is the settings file of the machine's administrator.
const managedSettings = "/Library/Application Support/ClaudeCode/managed-settings.json"
