// What the theme leaves out for keyboards and screen readers: buttons to copy are no landmarks, wide tables take the focus.
const mend = () => {
  document.querySelectorAll(".md-code__nav:not([role])").forEach((nav) => nav.setAttribute("role", "none"));
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((wrap) => {
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
  });
};
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
addEventListener("load", mend);
addEventListener("resize", mend);
