// One .proto file, as text or as a serialized FileDescriptorProto, into protobufjs's reflection objects.
import type protobuf from 'protobufjs';
import { descriptors, protobufjs } from './protobufjs.ts';

/** What a file holds by itself: its messages in order, and the paths that it imports. */
export interface ParsedFile {
  readonly messages: readonly protobuf.Type[];
  readonly imports: readonly string[];
}

/** Base64, as clients register descriptors. A .proto text always has braces, quotes or semicolons. */
const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;

/** Adds a file to `root`, which must not hold other files' messages of the same packages yet if order matters. */
export function parseFile(schema: string, root: protobuf.Root): ParsedFile {
  return BASE64.test(schema) ? parseDescriptor(schema, root) : parseText(schema, root);
}

function parseText(schema: string, root: protobuf.Root): ParsedFile {
  const before = new Set(typesUnder(root));
  const parsed = protobufjs().parse(schema, root, { keepCase: true, alternateCommentMode: true });
  const scope = parsed.package === undefined ? root : root.lookup(parsed.package);
  const types = scope instanceof protobufjs().Namespace ? typesUnder(scope) : [];
  return {
    messages: types.filter((type) => !before.has(type)),
    imports: [...(parsed.imports ?? []), ...(parsed.weakImports ?? [])],
  };
}

function typesUnder(scope: protobuf.NamespaceBase): protobuf.Type[] {
  return scope.nestedArray.filter((inner) => inner instanceof protobufjs().Type);
}

function parseDescriptor(schema: string, root: protobuf.Root): ParsedFile {
  const bytes = Buffer.from(schema, 'base64');
  const file = descriptors().FileDescriptorProto.decode(bytes) as unknown as {
    readonly package?: string;
    readonly dependency?: readonly string[];
  };
  const own = protobufjs().Root.fromDescriptor({ file: [file] } as never) as protobuf.Root;
  const scope = file.package ? own.lookup(file.package) : own;
  const messages = scope instanceof protobufjs().Namespace ? typesUnder(scope) : [];
  for (const inner of [...own.nestedArray]) adopt(root, inner);
  return { messages, imports: file.dependency ?? [] };
}

/** Moves an object from another root, packages merged. */
function adopt(target: protobuf.NamespaceBase, object: protobuf.ReflectionObject): void {
  const present = target.get(object.name);
  const isPackage =
    object instanceof protobufjs().Namespace &&
    !(object instanceof protobufjs().Type) &&
    present !== null;
  if (isPackage && present instanceof protobufjs().Namespace) {
    for (const inner of [...object.nestedArray]) adopt(present, inner);
    return;
  }
  object.parent?.remove(object);
  target.add(object);
}
