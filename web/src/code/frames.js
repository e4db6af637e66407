// Frames of stacks as text: "function (file:line)" of Python, and of native code where the line is known, or
// "function (library)". Parses them, and finds the module that a frame belongs to.

/** @import { Frame, Place, SourceFile } from "../types.js" */

const AT_LINE = /^(.*?) \((.*):(\d+)\)$/s;
const IN_LIBRARY = /^(.*) \(([^():]+)\)$/s;
const PYTHON_FILE = /(?:\.pyw?|\.pyx|\.pxd|\.ipynb)$|^</;
const PACKAGE = /\/(?:site|dist)-packages\/([^/]+)/;
const STANDARD = /\/lib(?:64)?\/python3[^/]*\/(?:lib-dynload\/)?([^/]+)/;

/** @param {string} path */
export const baseName = (path) => path.slice(path.lastIndexOf("/") + 1);

/**
 * The end of a path that tells files apart: with the package if the file is an __init__.py.
 * @param {string} path
 */
export const shortPath = (path) => /[^/]*(?:\/__init__\.py)?$/.exec(path)?.[0] || path;

/** @param {string} name */
const withoutExtension = (name) => name.replace(/(.)\.[^.]*$/, "$1");

/** libtorch_cpu.so.2 and libtorch_cpu.so are the same library. @param {string} name */
const libraryName = (name) => baseName(name).replace(/\.so[.\d]*$/, "");

/**
 * The module, package or library that a file belongs to.
 * @param {string} file
 */
export function moduleOfFile(file) {
	const frozen = /^<frozen ([^.>]+)/.exec(file);
	if (frozen)
		return frozen[1];
	const [, packaged] = PACKAGE.exec(file) ?? STANDARD.exec(file) ?? [];
	if (packaged)
		return withoutExtension(packaged);
	const parts = file.split("/");
	const last = parts[parts.length - 1];
	const ofPackage = last === "__init__.py" || last === "__main__.py";
	return ofPackage ? (parts[parts.length - 2] ?? last) : withoutExtension(last);
}

/** @type {Map<string, Frame>} */
const known = new Map();

/** @param {string} label @returns {Frame} */
function parse(label) {
	const [, name, file, line] = AT_LINE.exec(label) ?? [];
	if (file)
		return {
			name,
			kind: PYTHON_FILE.test(file) ? "python" : "native",
			module: moduleOfFile(file),
			short: `${name} (${shortPath(file)}:${line})`,
			place: { function: name, file, line: Number(line) },
		};
	const [, symbol, library] = IN_LIBRARY.exec(label) ?? [];
	if (library)
		return { name: symbol, kind: "native", module: libraryName(library), short: label, place: null };
	return { name: label, kind: "native", module: "", short: label, place: null };
}

/**
 * A frame of a sampled stack. Labels come again and again, so each is parsed once.
 * @param {string} label
 */
export function frameOf(label) {
	let frame = known.get(label);
	if (!frame) {
		frame = parse(label);
		known.set(label, frame);
	}
	return frame;
}

/**
 * What the flame graph searches for to find the function of a place, whatever its lines are.
 * @param {Place} place
 * @param {boolean} samples frames of samples have the file, zones only the name
 */
export const findText = (place, samples) =>
	samples ? `${place.function} (${shortPath(place.file)}:` : place.function;

/**
 * The file of a list that a place names: by its path, or by the end of it, as call sites have no folders.
 * @template {SourceFile} F
 * @param {F[]} files
 * @param {string} name
 * @returns {F|undefined}
 */
export const fileNamed = (files, name) =>
	files.find((one) => one.file === name) ?? files.find((one) => one.file.endsWith(`/${name}`));
