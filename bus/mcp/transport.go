package mcp

type wire struct{}
