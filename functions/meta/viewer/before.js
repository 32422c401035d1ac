// A library of the viewer would try whether it may compile code, which the page's policy forbids.
globalThis.__zod_globalConfig = { jitless: true };
