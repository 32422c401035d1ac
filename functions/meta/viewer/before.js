// Otherwise, one of the viewer's libraries would test whether it can compile code, which the page's policy forbids.
globalThis.__zod_globalConfig = { jitless: true };
