// The tree of a flame graph, built from zones, from samples, or from an answer of a server.
import { frameOf } from "./code/frames.js";

/** @import { Name, Place } from "./types.js" */

/** A flame graph while it is built. */
export class FlameTree {
	/** @param {string} root @param {"ns"|"samples"} unit */
	constructor(root, unit) {
		this.unit = unit;
		/** @type {string[]} */ this.label = [root];
		/** @type {string[]} */ this.source = [""];
		/** @type {number[]} */ this.parent = [-1];
		/** @type {number[]} */ this.total = [0];
		/** @type {number[]} */ this.self = [0];
		/** @type {Map<string|number, number>[]} */ this.children = [new Map()];
		/** Frames are those of stack samples. */
		this.sampled = false;
		/** Names of zones, by node. @type {(Pick<Name, "file"|"line">|undefined)[]} */ this.names = [];
	}

	/**
	 * Where the code of a frame is.
	 * @param {number} node
	 * @returns {Place|null}
	 */
	place(node) {
		if (!this.source[node])
			return null;
		if (this.sampled)
			return frameOf(this.label[node]).place;
		const { file = "", line = 0 } = this.names[node] ?? {};
		return file && line ? { function: this.label[node], file, line } : null;
	}

	/** @param {number} parent @param {string} label @param {string} source @param {string|number} key */
	child(parent, label, source, key) {
		const known = this.children[parent].get(key);
		if (known !== undefined)
			return known;
		const id = this.label.length;
		this.children[parent].set(key, id);
		this.label.push(label);
		this.source.push(source);
		this.parent.push(parent);
		this.total.push(0);
		this.self.push(0);
		this.children.push(new Map());
		return id;
	}

	/** Computes self times, and the time of frames that only hold others. */
	finish() {
		const inside = new Float64Array(this.label.length);
		for (let i = this.label.length - 1; i >= 0; i--) {
			this.total[i] = Math.max(this.total[i], inside[i]);
			this.self[i] = this.total[i] - inside[i];
			if (i)
				inside[this.parent[i]] += this.total[i];
		}
		return this;
	}
}
