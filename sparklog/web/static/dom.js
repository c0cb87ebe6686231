// Elements, made and patched in place. Text is always text: nothing here reads markup.

/** An element. `props` are attributes; null, undefined and false ones are left out. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Make the children of `target` equal to `nodes`, and keep what is already so: focus, scroll and selection. */
export function morph(target, nodes) {
  const wanted = nodes.flat(Infinity).filter((node) => node instanceof Node);
  wanted.forEach((node, position) => {
    const present = target.childNodes[position];
    if (present === undefined) target.append(node);
    else if (isAlike(present, node)) patch(present, node);
    else {
      const later = [...target.childNodes].slice(position + 1).find((one) => keyOf(one) && isAlike(one, node));
      if (later) {
        target.insertBefore(later, present);
        patch(later, node);
      } else if (keyOf(present) && wanted.slice(position + 1).some((one) => isAlike(present, one))) {
        target.insertBefore(node, present);
      } else target.replaceChild(node, present);
    }
  });
  while (target.childNodes.length > wanted.length) target.lastChild.remove();
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);

const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

function patch(present, wanted) {
  if (present.nodeType !== Node.ELEMENT_NODE) {
    if (present.nodeValue !== wanted.nodeValue) present.nodeValue = wanted.nodeValue;
    return;
  }
  if (present.hasAttribute("data-kept") && wanted.hasAttribute("data-kept")) return;
  for (const { name } of [...present.attributes]) {
    const isOpen = present.nodeName === "DETAILS" && name === "open"; // the person opened it
    if (!wanted.hasAttribute(name) && !isOpen) present.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (present.getAttribute(name) !== value) present.setAttribute(name, value);
  }
  if (present.nodeName === "SELECT" || present.nodeName === "INPUT") patchControl(present, wanted);
  else morph(present, [...wanted.childNodes]);
}

/** What a person types now stays as it is. */
function patchControl(present, wanted) {
  if (present.nodeName === "SELECT") morph(present, [...wanted.childNodes]);
  if (document.activeElement === present) return;
  if (present.value !== wanted.value) present.value = wanted.value;
  if (present.checked !== wanted.checked) present.checked = wanted.checked;
}
