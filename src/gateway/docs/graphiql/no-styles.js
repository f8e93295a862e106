// Instead of react-style-singleton, which writes <style> elements that the policy of the page forbids. Dialogs and menus use it
// to hide the scroll bar of the page, which has none.

export const styleSingleton = () => () => null
