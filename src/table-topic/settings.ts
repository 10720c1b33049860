// The joint of settings/ for importers of this path, which goes once they import settings/index.ts.
export * from './settings/index.ts';
