// ZIP archives of files that are compressed already: stored as they are, with names in UTF-8.

const MOST = 0xffffffff;
const MOST_FILES = 0xffff;
const UTF8 = 0x0800;
const VERSION = 20;
const DAY = 0x21; // 1 January 1980: when a release was made is nobody's business

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

/** Return the CRC-32 of bytes. */
export function crc32(bytes) {
  let value = MOST;
  for (const byte of bytes) value = TABLE[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ MOST) >>> 0;
}

/** Return bytes of little-endian numbers, each given as [number, bytes]. */
function packed(...numbers) {
  const made = new DataView(new ArrayBuffer(numbers.reduce((sum, [, size]) => sum + size, 0)));
  let at = 0;
  for (const [number, size] of numbers) {
    if (size === 2) made.setUint16(at, number, true);
    else made.setUint32(at, number, true);
    at += size;
  }
  return new Uint8Array(made.buffer);
}

/** Return the parts of an archive of files [{name, bytes}]; raises `RangeError` for what needs ZIP64. */
export function zipped(files) {
  const local = [];
  const central = [];
  let at = 0;
  for (const { name, bytes } of files) {
    const letters = new TextEncoder().encode(name);
    const size = [bytes.length, 4];
    const common = [[VERSION, 2], [UTF8, 2], [0, 2], [0, 2], [DAY, 2], [crc32(bytes), 4], size, size];
    const head = packed([0x04034b50, 4], ...common, [letters.length, 2], [0, 2]);
    const rest = [[letters.length, 2], [0, 2], [0, 2], [0, 2], [0, 2], [0, 4], [at, 4]];
    central.push(packed([0x02014b50, 4], [VERSION, 2], ...common, ...rest), letters);
    local.push(head, letters, bytes);
    at += head.length + letters.length + bytes.length;
  }
  const size = central.reduce((sum, part) => sum + part.length, 0);
  if (at + size > MOST || files.length > MOST_FILES) {
    throw new RangeError("there are too many releases for one archive: download them one by one");
  }
  const count = [files.length, 2];
  const end = packed([0x06054b50, 4], [0, 2], [0, 2], count, count, [size, 4], [at, 4], [0, 2]);
  return [...local, ...central, end];
}
