// Keeps one of the viewer's libraries from testing whether it can compile code, which the page's policy forbids.
globalThis.__zod_globalConfig = { jitless: true };
