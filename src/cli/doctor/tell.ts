// How commands tell what they found: as a table or JSON, and by the exit code.
import { Option } from 'commander';
import { type Finding, findingsText } from './finding.ts';

export type Format = 'table' | 'json';

export const formatOption = () =>
  new Option('--format <format>', 'how to print').choices(['table', 'json']).default('table');

/** Exit code 1 if anything is wrong. */
export function tellFindings(findings: readonly Finding[], format: Format): void {
  process.stdout.write(
    format === 'json' ? `${JSON.stringify(findings, null, 2)}\n` : findingsText(findings),
  );
  if (findings.some(({ severity }) => severity === 'wrong')) process.exitCode = 1;
}
