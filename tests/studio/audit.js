// What is wrong with how a page can be seen and used: contrast (WCAG 2 AA), structure, order of the focus, sizes of targets.
() => {
  const found = [];
  const seen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.getClientRects().length > 0;
  const what = (element) => {
    const text = (element.textContent || element.value || element.getAttribute("aria-label") || "").trim().slice(0, 40);
    return `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") ?? ""}"> ${text}`;
  };

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  /** A colour as red, green, blue and how much of it there is. */
  const colour = (text) => {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(text, [red, green, blue, alpha / 255]);
    }
    return known.get(text);
  };
  const over = (top, below) => [0, 1, 2].map((each) => top[each] * top[3] + below[each] * (1 - top[3]));
  const light = (rgb) => {
    const [red, green, blue] = rgb.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ratio = (one, other) => {
    const [bright, dark] = [light(one), light(other)].sort((a, b) => b - a);
    return (bright + 0.05) / (dark + 0.05);
  };
  const grounds = new Map();
  const behind_all_of = (element) => {
    if (!element) return [255, 255, 255];
    if (!grounds.has(element)) grounds.set(element, over(colour(getComputedStyle(element).backgroundColor), behind_all_of(element.parentElement)));
    return grounds.get(element);
  };
  /** What lies behind an element; a text in a drawing lies on its box. */
  const ground = (element) => {
    const box = element.tagName === "text" && element.closest("g")?.querySelector("rect");
    return box ? over(colour(getComputedStyle(box).fill), behind_all_of(element)) : behind_all_of(element);
  };

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const checked = new Set();
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || checked.has(element) || !seen(element)) continue;
    checked.add(element);
    if (element.closest(":disabled, .unseen, .skip, option, title, noscript")) continue;
    const style = getComputedStyle(element);
    const behind = ground(element);
    const ink = over(colour(element.tagName === "text" ? style.fill : style.color), behind);
    const pixels = parseFloat(style.fontSize);
    const large = pixels >= 24 || (pixels >= 18.66 && Number(style.fontWeight) >= 700);
    const has = ratio(ink, behind);
    if (has < (large ? 3 : 4.5)) found.push(`contrast ${has.toFixed(2)} of a text: ${what(element)}`);
  }
  for (const field of document.querySelectorAll("input:not([type=range], [type=checkbox]), select, textarea")) {
    if (!seen(field) || field.disabled) continue;
    const has = ratio(over(colour(getComputedStyle(field).borderColor), ground(field)), ground(field.parentElement));
    if (has < 3) found.push(`contrast ${has.toFixed(2)} of the edge of a field: ${what(field)}`);
  }

  if (document.documentElement.lang !== "en") found.push("no language");
  if (!document.title) found.push("no title");
  if (document.querySelectorAll("main").length !== 1) found.push("not one main part");
  const headings = [...document.querySelectorAll("h1, h2, h3, h4")].filter(seen).map((one) => Number(one.tagName[1]));
  if (headings.filter((level) => level === 1).length !== 1) found.push(`not one first heading: ${headings}`);
  headings.forEach((level, index) => {
    if (index && level > headings[index - 1] + 1) found.push(`a heading of level ${level} behind one of level ${headings[index - 1]}`);
  });
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  if (new Set(ids).size !== ids.length) found.push(`an id twice: ${ids}`);
  for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) found.push(`out of order: ${what(element)}`);
  for (const element of document.querySelectorAll("button, select, input, summary")) {
    const box = element.getBoundingClientRect();
    if (seen(element) && element.type !== "checkbox" && element.type !== "range" && box.height < 24 && !element.closest("p")) found.push(`${box.height.toFixed(0)} pixels high: ${what(element)}`);
  }
  return found;
}
