// Styles are bundled by esbuild; there is nothing in them for the type checker.
declare module "*.css";
