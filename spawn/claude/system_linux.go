package claude

// inKeychain says that a login may be where we don't look.
const inKeychain = false

// managedSettings is what whoever looks after the machine has laid down.
const managedSettings = "/etc/claude-code/managed-settings.json"
