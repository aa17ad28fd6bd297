// Colours of states, gangs and kinds, by theme; read anew when the theme changes.

export const STATES = {
  F: { name: "Free", css: "--free" },
  H: { name: "Held", css: "--held" },
  S: { name: "Shared", css: "--shared" },
  U: { name: "Unhealthy", css: "--sick" },
  T: { name: "Tainted", css: "--tainted" },
  A: { name: "Unavailable", css: "--away" },
};

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const lightness = () => Number.parseFloat(css("--palette-light"));

// A few names, as far apart as they can be.
export function palette(names) {
  return new Map(names.map((name, index) => [name, `hsl(${Math.round(40 + (300 * index) / names.length)} 65% ${lightness() + 10 * (index % 2)}%)`]));
}

// The same name has the same colour in every view; none is the red of what is sick.
export function colorOf(name) {
  let hash = 2166136261;
  for (let index = 0; index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 16777619) >>> 0;
  }
  const light = lightness() + 8 * ((hash >>> 12) % 3);
  return `hsl(${Math.round(40 + ((hash * 137.508) % 300))} ${58 + ((hash >>> 8) % 3) * 10}% ${light}%)`;
}
