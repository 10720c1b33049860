// `npm run test:s3 [-- vitest arguments]`: installs moto where it is missing, starts it on a free loopback port,
// runs the S3 suites against it and stops it again.
import { spawn } from 'node:child_process';
import { installS3, startS3 } from './server.ts';

await installS3();
const server = await startS3();
if (server === undefined) throw new Error('no S3 server could be installed');
const given = process.argv.slice(2);
const args = ['vitest', 'run', ...(given.length > 0 ? given : ['src/storage/objects/s3.test.ts'])];
const tests = spawn('npx', args, {
  stdio: 'inherit',
  env: { ...process.env, FLOE_S3_ENDPOINT: server.endpoint },
});
const code = await new Promise<number>((resolve) =>
  tests.once('exit', (exit) => resolve(exit ?? 1)),
);
await server.stop();
process.exitCode = code;
