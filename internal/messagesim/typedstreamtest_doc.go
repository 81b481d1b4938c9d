// This file writes attributedBody archives for tests, as NSArchiver on macOS writes
// them: the same tables, the same references, the same widths of integers. It is not in the
// binary.
//
// It knows what the attributed strings of Messages.app consist of, and nothing else of the
// format. What it writes was compared byte for byte with what macOS wrote for the same strings;
// Width is the one way to make it write what macOS does not.

package messagesim
