package worker

// MaxUnsettled is for the tests of this package.
const MaxUnsettled = maxUnsettled
