"""Permission rules and the answers a person may give.

`rules` evaluates allow, ask and deny rules; `question_answers` checks answers against the options
offered. Waiting for a person is `location.approval`.
"""
