// A small disk of its own for a server under test: a tmpfs that can be made full and roomy again. Where mounting isn't
// permitted, as in many containers, it is a plain folder, and `fill` says that it can do nothing.
import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync } from 'node:fs';

const SIZE = '1g';

export class SmallDisk {
  readonly directory: string;
  readonly #atExit = () => this.remove();
  /** False: it can't be filled. */
  readonly limited: boolean;

  /** @param directory is there, and empty. */
  constructor(directory: string) {
    this.directory = directory;
    this.limited = mounted(['-t', 'tmpfs', '-o', `size=${SIZE},mode=0700`, 'tmpfs', directory]);
    process.once('exit', this.#atExit);
  }

  /** From now on nothing more fits. @returns false when this disk has no limit. */
  fill(): boolean {
    if (!this.limited) return false;
    const { blocks, bfree, bsize } = statfsSync(this.directory);
    return mounted(['-o', `remount,size=${(blocks - bfree) * bsize}`, this.directory]);
  }

  /** There is room again. */
  relieve(): void {
    if (this.limited) mounted(['-o', `remount,size=${SIZE}`, this.directory]);
  }

  remove(): void {
    process.off('exit', this.#atExit);
    if (this.limited) execFileSync('umount', ['-l', this.directory], { stdio: 'ignore' });
    rmSync(this.directory, { recursive: true, force: true });
  }
}

function mounted(args: readonly string[]): boolean {
  try {
    execFileSync('mount', args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
