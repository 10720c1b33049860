// The program of an earlier revision, for a cluster of two versions side by side. It runs with the dependencies of this one.
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Levels } from '../../src/cluster/levels.ts';

const ROOT = join(import.meta.dirname, '../..');

export interface Program {
  /** What `node` runs. */
  readonly main: string;
  readonly levels: Levels;
}

/** Takes the sources of `revision` out of the repository into `folder`. @throws when git doesn't know it. */
export async function earlierProgram(revision: string, folder: string): Promise<Program> {
  const root = join(folder, 'earlier');
  mkdirSync(root);
  const sources = ['archive', revision, 'src', 'package.json'];
  const archive = execFileSync('git', sources, { cwd: ROOT, maxBuffer: 2 ** 28 });
  execFileSync('tar', ['-x', '-C', root], { input: archive });
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  const { LEVELS } = await import(pathToFileURL(join(root, 'src/cluster/levels.ts')).href);
  return { main: join(root, 'src/cli/main.ts'), levels: LEVELS };
}
