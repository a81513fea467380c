// Package browsertest tests the dashboard in Chromium: every action by mouse and by keyboard, with and
// without scripts, in both themes, at 360 and 1280 px; and every page by the rules of axe-core. Its
// tests need a Chromium, such as Debian's package chromium.
//
// It is a module of its own, so that no user of the library depends on what drives a browser. It is not
// released. Folder axe has axe-core 4.14.1 as its project publishes it, under its own license, the
// Mozilla Public License 2.0: so the tests need no network and no other package manager.
package browsertest
