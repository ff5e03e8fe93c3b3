// A component that is drawn again only when its properties are others.

import { Component, createElement, type FunctionComponent, type VNode } from "preact"

export function memo<P extends object>(
  draw: FunctionComponent<P>,
  isSame: (before: P, after: P) => boolean,
): FunctionComponent<P> {
  class Kept extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return !isSame(this.props as P, next)
    }
    override render(): VNode {
      return createElement(draw as FunctionComponent<object>, this.props)
    }
  }
  return Kept as unknown as FunctionComponent<P>
}
