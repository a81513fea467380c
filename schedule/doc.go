// Package schedule tells when something happens again and again: each quarter of an hour, at
// half past two on weekdays, or on the last Friday of the month. [Parse] reads such a schedule
// from text, and [Spec.Next] computes the next time in a time zone.
//
// # Expressions
//
// An expression has five fields, or six with seconds first, separated by spaces:
//
//	[second] minute hour day-of-month month day-of-week
//
// Each field is a list, separated by commas, of:
//
//   - every value
//     7         a value; months and days have names too, as in JAN and MON
//     1-5       a range, which may wrap around, as in FRI-MON and 22-2
//     */15      every 15th value, from the first one; 5/15 begins at 5, and 1-5/2 stays in its range
//     ?         the same as *, in the two fields of days
//     H         a value that follows from the name, for each name another; H(1-5) is one of a
//     range, H/15 every 15th value from such a one; see [ParseNamed]
//     L         the last day of the month; L-3 is the third day before it
//     15W       the weekday, Monday to Friday, nearest to a day of the month; LW is the last one
//     FRIL      the last Friday of the month; 5L is the same
//     FRI#2     the second Friday of the month
//
// Days of the week go from 0 to 6, and both 0 and 7 are Sunday. Names are read in any case. If
// both fields of days are restricted, that is neither has a *, a day needs to match one of
// them, otherwise it needs to match both. These are the rules of cron on most systems.
//
// A whole expression can be one of these:
//
//	@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly
//	@every 90s       each 90 seconds since the start of 1970, UTC, so that a restart moves nothing
//	@every 1h/10m    the same, ten minutes later
//
// The prefix TZ= or CRON_TZ=, as in "TZ=Europe/Berlin 30 2 * * *", sets the time zone. A # behind a
// space begins a comment.
//
// # Summer time
//
// A schedule whose hours are all 24 follows elapsed time: it happens whenever the clock shows a
// matching time, so in an hour that is repeated it happens twice, and in one that is skipped
// not at all. Every other schedule follows the days: a time that the clock skips counts at the
// end of the gap, once for all times in the gap, and a time that the clock shows twice counts at
// the first of them. So a job for half past two runs once on each day of the year.
package schedule
