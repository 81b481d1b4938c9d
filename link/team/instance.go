package team

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"netsky/home"
)

// Instance tells a home from its copies, which have the same key: it is made of the machine,
// the home's path and the file that holds the key. The same home has the same one as long as
// it is not moved or restored.
func Instance(h home.Dir) (string, error) {
	info, err := os.Lstat(h.Path(KeyFile))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", machine(), h.Root(), fileID(h.Path(KeyFile), info)))
	return hex.EncodeToString(sum[:8]), nil
}
