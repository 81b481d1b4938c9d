package cost_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"netsky/bus"
	"netsky/cost"
	"netsky/home"
	"netsky/store"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("METER_HOME"); dir != "" {
		fmt.Fprintln(os.Stderr, readOn(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// readOn reads again and again until it is killed.
func readOn(dir string) error {
	h, err := home.At(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	db, err := store.Open(ctx, h)
	if err != nil {
		return err
	}
	for {
		m := cost.NewMeter(cost.MeterOptions{
			Home: h, Bus: bus.New(h, bus.Options{}), Records: func() *store.DB { return db }, Sources: sources(), Log: slog.New(slog.DiscardHandler),
			Terms: func() cost.Terms { return cost.Terms{Prices: cost.Prices{}} },
		})
		if err := m.Read(ctx); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond) // for what it reads to be written, too
	}
}
