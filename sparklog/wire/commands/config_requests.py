"""Changes of settings: requests as commands, results as responses."""

from typing import Final

from sparklog.core.controller.commands.config_commands import (
    ChangeConfigs,
    ConfigChange,
    ConfigsResult,
    Operation,
    SettingChange,
)
from sparklog.wire.messages.admin.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from sparklog.wire.messages.admin.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

OPERATIONS: Final[tuple[Operation, ...]] = ("set", "delete", "append", "subtract")
"""By the number that stands for them in IncrementalAlterConfigs."""


def incremental_alter_configs(request: IncrementalAlterConfigsRequest) -> ChangeConfigs:
    resources = tuple(
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            tuple(
                SettingChange(one.name, _operation(one.config_operation), one.value)
                for one in resource.configs
            ),
        )
        for resource in request.resources
    )
    return ChangeConfigs(resources, request.validate_only)


def _operation(number: int) -> Operation | None:
    return OPERATIONS[number] if 0 <= number < len(OPERATIONS) else None


def incremental_alter_configs_response(result: ConfigsResult) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResourceResponse(
                error_code=one.error,
                error_message=one.message or None,
                resource_type=one.kind,
                resource_name=one.name,
            )
            for one in result.resources
        ]
    )


def alter_configs(request: AlterConfigsRequest) -> ChangeConfigs:
    resources = tuple(
        ConfigChange(
            resource.resource_type,
            resource.resource_name,
            tuple(SettingChange(one.name, "set", one.value) for one in resource.configs),
            replaces_all=True,
        )
        for resource in request.resources
    )
    return ChangeConfigs(resources, request.validate_only)


def alter_configs_response(result: ConfigsResult) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=one.error,
                error_message=one.message or None,
                resource_type=one.kind,
                resource_name=one.name,
            )
            for one in result.resources
        ]
    )
