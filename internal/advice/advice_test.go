package advice_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"netsky/internal/advice"
	"netsky/internal/testworld"
)

func TestOf(t *testing.T) {
	inner := advice.With(io.EOF, "read %d more", 3)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{io.EOF, ""},
		{inner, "read 3 more"},
		{fmt.Errorf("file: %w", inner), "read 3 more"},
		{errors.Join(io.ErrClosedPipe, inner), "read 3 more"},
		{advice.With(inner, "begin again"), "begin again"},
		{advice.With(nil, "begin again"), ""},
	} {
		testworld.Equal(t, advice.Of(tt.err), tt.want, "Of(%v)", tt.err)
	}
	if !errors.Is(inner, io.EOF) || inner.Error() != io.EOF.Error() {
		t.Errorf("With changes the error: %v", inner)
	}
}
