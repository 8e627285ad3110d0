// The address bar holds the state of the page's controls; tables sort themselves.
window.automedbench = {
  remember(names, values) {
    const query = new URLSearchParams(location.search);
    names.forEach((name, i) => {
      const value = values[i];
      const text = Array.isArray(value) ? value.join(",") : value === null || value === undefined ? "" : String(value);
      if (text && text !== "false") query.set(name, text);
      else query.delete(name);
    });
    const text = query.toString().replaceAll("%2C", ",");
    history.replaceState(history.state, "", location.pathname + (text ? "?" + text : ""));
  },
};
