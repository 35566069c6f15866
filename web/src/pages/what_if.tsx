// Fills when the server offers POST /v1/what-if.
export function WhatIf() { return null; }
