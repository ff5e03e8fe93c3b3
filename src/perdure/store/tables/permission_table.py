"""Permission rules that a user saved for a project. They outlive every Session."""

from perdure.ports import Database, IdSource, Transaction
from perdure.schema.approval.permission import SavedRule
from perdure.schema.ids import ProjectID


class SavedPermissions:
    def __init__(self, database: Database, ids: IdSource) -> None:
        self._database = database
        self._ids = ids

    async def list(self, project_id: ProjectID) -> tuple[SavedRule, ...]:
        """The rules of a project, oldest first."""

        async def job(tx: Transaction) -> tuple[SavedRule, ...]:
            rows = await tx.fetch(
                "SELECT id, action, resource FROM saved_permission"
                " WHERE project_id = :project_id ORDER BY rowid",
                {"project_id": project_id},
            )
            return tuple(
                SavedRule(
                    id=str(rule_id),
                    project_id=project_id,
                    action=str(action),
                    resource=str(resource),
                )
                for rule_id, action, resource in rows
            )

        return await self._database.read(job)

    async def add(self, project_id: ProjectID, *, action: str, resources: tuple[str, ...]) -> None:
        async def job(tx: Transaction) -> None:
            for resource in resources:
                await tx.execute(
                    "INSERT INTO saved_permission (id, project_id, action, resource)"
                    " VALUES (:id, :project_id, :action, :resource) ON CONFLICT DO NOTHING",
                    {
                        "id": self._ids.named("psv"),
                        "project_id": project_id,
                        "action": action,
                        "resource": resource,
                    },
                )

        await self._database.write(job)

    async def remove(self, rule_id: str) -> None:
        await self._database.write(
            lambda tx: tx.execute("DELETE FROM saved_permission WHERE id = :id", {"id": rule_id})
        )
