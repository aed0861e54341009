// For the script of `idstack graph`, which runs as it is: no modules, and the browser's names alone.
import js from "@eslint/js";

export default [
  js.configs.recommended,
  {
    languageOptions: {
      ecmaVersion: 2022,
      sourceType: "script",
      globals: {
        document: "readonly",
        getComputedStyle: "readonly",
        getSelection: "readonly",
        Image: "readonly",
        matchMedia: "readonly",
        navigator: "readonly",
        URL: "readonly",
        XMLSerializer: "readonly",
      },
    },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: { eqeqeq: "error", "no-var": "error", "prefer-const": "error", "no-implicit-globals": "error" },
  },
];
