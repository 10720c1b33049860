// A process whose work waits for nothing that would keep it.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';

const url = (file: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, file)).href);

test('a pause is waited for, and then nothing keeps the process', () => {
  const script = `
    import { systemClock } from ${url('../base/clock.ts')};
    import { stayingAlive } from ${url('stay-alive.ts')};
    await stayingAlive(() => systemClock.sleep(50));
    console.log('done');`;
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  expect(said).toBe('done\n');
});
