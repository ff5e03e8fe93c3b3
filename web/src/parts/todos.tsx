// A list of todos, in the model's words.

import type { Todo } from "perdure-client"
import type { JSX } from "preact"
import { visible } from "../lib/format"
import { Icon } from "./icons"

export function TodoList(props: { todos: readonly Partial<Todo>[] }): JSX.Element {
  return (
    <ul class="todos">
      {props.todos.map((todo, at) => (
        <li key={at} class={String(todo.status)}>
          <span class="tick" role="img" aria-label={String(todo.status)}>
            {todo.status === "completed" ? <Icon name="check" size={13} /> : todo.status === "in_progress" ? <span class="dot run" /> : null}
          </span>
          <bdi>{visible(String(todo.content ?? ""))}</bdi>
        </li>
      ))}
    </ul>
  )
}
