package claude

// inKeychain says that a login may be where we don't look.
const inKeychain = true

// managedSettings is what whoever looks after the machine has laid down.
const managedSettings = "/Library/Application Support/ClaudeCode/managed-settings.json"
