// Package schedule fires recurring jobs and runs of workflows: every 15 minutes, at 2:30 on
// weekdays, or on the last Friday of the month.
//
// [Open] returns a [Scheduler] over a queue, and its Sync stores the schedules of the program:
//
//	s, err := schedule.Open(q, nil)
//	...
//	err = s.Sync(ctx,
//		schedule.Job("nightly", "30 2 * * MON-FRI", SendReport, ReportArgs{}, schedule.In("Europe/Berlin")),
//		schedule.Flow("settle", "@every 15m", Settle, Input{}))
//	defer s.Close()
//
// A tick is one of the times of a schedule. Each tick gets one decision: it fires, waits, is skipped, or is
// missed. One transaction decides a tick and enqueues its job. So a tick is neither lost nor fired twice, even after a
// crash, and even if several processes share the queue. The options of a schedule say what happens to ticks that come
// late ([CatchUp], [Window]) or while the last job is alive ([Overlap]). Operators change schedules with a Manager, and
// look at them with a Reader.
//
// The times can be used alone: [Parse] reads a schedule from text, and [Spec.Next] computes its next
// time in a time zone.
//
// # Expressions
//
// An expression has five fields, or six with seconds first, separated by spaces:
//
//	[second] minute hour day-of-month month day-of-week
//
// Each field is a list of these parts, separated by commas:
//
//	7         a value; months and days of the week also have names, such as JAN and MON
//	*         every value
//	1-5       a range; it may wrap around, as in FRI-MON and 22-2
//	*/15      every 15th value, starting with the first
//	5/15      every 15th value, starting with 5
//	1-5/2     every second value of a range
//	?         the same as *, in the two day fields only
//	H         a value that depends on the name of the schedule; see ParseNamed
//	H(1-5)    such a value within a range
//	H/15      every 15th value, starting with such a value
//	L         the last day of the month
//	L-3       the third day before the last day of the month
//	15W       the weekday, Monday to Friday, nearest to the 15th of the month
//	LW        the last weekday of the month
//	FRIL      the last Friday of the month; 5L is the same
//	FRI#2     the second Friday of the month
//
// Days of the week are 0 to 6, and both 0 and 7 mean Sunday. Names can be in upper or lower case. If
// neither day field contains a * or a ?, a day has to match only one of the two fields. Otherwise it
// has to match both. These are the rules of cron on most systems.
//
// A whole expression can be one of these:
//
//	@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly
//	@every 90s       every 90 seconds, counted from the start of 1970 in UTC
//	@every 1h/10m    every hour, counted from ten minutes after the start of 1970 in UTC
//	@open            once whenever a process opens the queue and starts its scheduler
//
// The times of @every do not depend on the start of the program. The prefix TZ= or CRON_TZ=, as in
// "TZ=Europe/Berlin 30 2 * * *", sets the time zone. A # at the start of a word begins a comment.
//
// # Daylight saving time
//
// A schedule that includes all 24 hours follows elapsed time. It happens whenever the clock shows a
// matching time: twice in an hour that the clock repeats, and not at all in an hour that the clock
// skips.
//
// Every other schedule follows the days. If the clock skips matching times, the schedule happens
// once, at the end of the gap. If the clock shows a matching time twice, the schedule happens the
// first time. So a daily job at 2:30 runs once on every day of the year.
package schedule
