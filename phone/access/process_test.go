package access_test

import (
	"fmt"
	"os"
	"testing"

	"netsky/home"
	"netsky/phone/access"
)

// TestMain is the tests, or one of the processes that they start: one that allows and denies
// handles of its own until it is killed.
func TestMain(m *testing.M) {
	root := os.Getenv("ACCESS_TEST_HOME")
	if root == "" {
		os.Exit(m.Run())
	}
	h, err := home.At(root)
	if err != nil {
		panic(err)
	}
	prefix := os.Getenv("ACCESS_TEST_PREFIX")
	rounds := map[bool]int{true: 1 << 30, false: 40}[os.Getenv("ACCESS_TEST_FOREVER") != ""]
	fmt.Println("ready")
	for n := range rounds {
		handle := fmt.Sprintf("+%s%04d", prefix, n%40)
		if _, _, err = access.Allow(ctx(), h, handle, noon); err == nil && n%3 == 0 {
			_, _, err = access.Deny(ctx(), h, handle, noon)
		}
		if err != nil {
			panic(err)
		}
	}
}
