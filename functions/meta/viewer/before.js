// A library of the viewer would test whether it can compile code, which the page's policy forbids.
globalThis.__zod_globalConfig = { jitless: true };
