package mcp_test

func serverProcess(home string) int { return 1 }
