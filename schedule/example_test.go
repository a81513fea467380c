package schedule_test

import (
	"fmt"
	"time"

	"github.com/gopawl/pawl/schedule"
)

func ExampleSpec_Next() {
	report, err := schedule.Parse("TZ=Europe/Berlin 30 2 * * MON-FRI")
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Words())
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for range 3 {
		at = report.Next(at, time.UTC)
		fmt.Println(at)
	}
	// Output:
	// at 02:30 from Monday to Friday, time zone Europe/Berlin
	// 2026-11-27 02:30:00 +0100 CET
	// 2026-11-30 02:30:00 +0100 CET
	// 2026-12-01 02:30:00 +0100 CET
}
