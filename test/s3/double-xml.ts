// The XML of S3's REST API as far as the double speaks it. Not a parser: what it reads was written by an SDK.

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

export const escapeXml = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 can't hold them
  text.replace(/[&<>"']/g, (found) => ESCAPES[found]!).replace(/[\u0000-\u001f]/g, '');

const unescapeXml = (text: string): string =>
  text
    .replace(/&#x([0-9a-fA-F]+);/g, (_, hex: string) => String.fromCodePoint(parseInt(hex, 16)))
    .replace(/&#([0-9]+);/g, (_, digits: string) => String.fromCodePoint(Number(digits)))
    .replace(
      /&(lt|gt|quot|apos|amp);/g,
      (_, name: string) => ({ lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' })[name]!,
    );

/** `<name>…</name>` around what is XML already. */
export const element = (name: string, ...content: readonly string[]): string =>
  `<${name}>${content.join('')}</${name}>`;

/** `<name>text</name>`. */
export const textElement = (name: string, text: string | number | boolean): string =>
  element(name, escapeXml(String(text)));

export const xmlDocument = (root: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n${root}`;

/** The texts of all elements of a name, in order. */
export function textsOf(xml: string, name: string): string[] {
  const pattern = new RegExp(`<${name}>([^<]*)</${name}>`, 'g');
  return [...xml.matchAll(pattern)].map((found) => unescapeXml(found[1]!));
}

/** S3's error document. */
export const errorXml = (code: string, message: string, key: string): string =>
  xmlDocument(
    element(
      'Error',
      textElement('Code', code),
      textElement('Message', message),
      textElement('Key', key),
      textElement('RequestId', '0'),
    ),
  );
