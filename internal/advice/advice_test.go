package advice_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"netsky/internal/advice"
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
		if got := advice.Of(tt.err); got != tt.want {
			t.Errorf("Of(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
	if !errors.Is(inner, io.EOF) || inner.Error() != io.EOF.Error() {
		t.Errorf("With changes the error: %v", inner)
	}
}
