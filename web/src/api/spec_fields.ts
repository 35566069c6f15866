// Generated from the OpenAPI document by scripts/generate_types.mjs; do not edit.

export interface SpecField {
  /** The name in job files, without the unit of a number. */
  name: string;
  default?: unknown;
  /** The flag of muster submit. */
  flag?: string;
  /** The value that a flag without an argument sets. */
  means?: string;
  /** The user chooses the keys of the value. */
  map?: true;
  /** The fields of a document, or of each element of a list of documents. */
  fields?: SpecFields;
}

/** Fields by their names in the API. */
export type SpecFields = {[wire: string]: SpecField};

export const kSpecFields: SpecFields = {
  "name": {
    "name": "name"
  },
  "project": {
    "name": "project",
    "default": "default",
    "flag": "--project"
  },
  "kind": {
    "name": "kind",
    "default": "single"
  },
  "image": {
    "name": "image",
    "flag": "--image"
  },
  "user": {
    "name": "user",
    "flag": "--user"
  },
  "registry": {
    "name": "registry",
    "flag": "--registry-username",
    "fields": {
      "server": {
        "name": "server",
        "flag": "--registry-server"
      },
      "username": {
        "name": "username",
        "flag": "--registry-username"
      },
      "secret": {
        "name": "secret",
        "flag": "--registry-secret"
      }
    }
  },
  "container": {
    "name": "container",
    "fields": {
      "pull": {
        "name": "pull",
        "default": "if-missing",
        "flag": "--image-pull-policy"
      },
      "writable_root": {
        "name": "writable_root",
        "default": false,
        "flag": "--writable-root",
        "means": "true"
      },
      "new_privileges": {
        "name": "new_privileges",
        "default": false,
        "flag": "--allow-new-privileges",
        "means": "true"
      },
      "capabilities": {
        "name": "capabilities",
        "flag": "--cap-add"
      },
      "shm_bytes": {
        "name": "shm",
        "default": 0,
        "flag": "--shm-size"
      }
    }
  },
  "slurm": {
    "name": "slurm",
    "fields": {
      "partition": {
        "name": "partition",
        "flag": "--slurm-partition"
      },
      "account": {
        "name": "account",
        "flag": "--slurm-account"
      },
      "qos": {
        "name": "qos",
        "flag": "--slurm-qos"
      },
      "reservation": {
        "name": "reservation",
        "flag": "--slurm-reservation"
      },
      "constraint": {
        "name": "constraint",
        "flag": "--slurm-constraint"
      }
    }
  },
  "kubernetes": {
    "name": "kubernetes",
    "fields": {
      "node_selector": {
        "name": "node_selector",
        "flag": "--kubernetes-node-selector",
        "map": true
      },
      "tolerations": {
        "name": "tolerations",
        "flag": "--kubernetes-toleration"
      },
      "priority_class": {
        "name": "priority_class",
        "flag": "--kubernetes-priority-class"
      },
      "service_account": {
        "name": "service_account",
        "flag": "--kubernetes-service-account"
      },
      "runtime_class": {
        "name": "runtime_class",
        "flag": "--kubernetes-runtime-class"
      },
      "image_pull_secrets": {
        "name": "image_pull_secrets",
        "flag": "--kubernetes-pull-secret"
      },
      "claims": {
        "name": "claims",
        "flag": "--kubernetes-claim"
      },
      "devices": {
        "name": "devices",
        "flag": "--kubernetes-device",
        "map": true
      },
      "labels": {
        "name": "labels",
        "flag": "--kubernetes-label",
        "map": true
      },
      "annotations": {
        "name": "annotations",
        "flag": "--kubernetes-annotation",
        "map": true
      },
      "containers": {
        "name": "containers",
        "fields": {
          "name": {
            "name": "name"
          },
          "runs": {
            "name": "runs",
            "default": "before"
          },
          "of": {
            "name": "of",
            "default": "all"
          },
          "image": {
            "name": "image"
          },
          "pull": {
            "name": "pull",
            "default": "if-missing"
          },
          "command": {
            "name": "command"
          },
          "arguments": {
            "name": "arguments"
          },
          "environment": {
            "name": "environment",
            "map": true
          },
          "folder": {
            "name": "folder"
          },
          "user": {
            "name": "user"
          },
          "cpus": {
            "name": "cpus",
            "default": 0
          },
          "memory_bytes": {
            "name": "memory",
            "default": 0
          },
          "mounts": {
            "name": "mounts"
          }
        }
      }
    }
  },
  "launch": {
    "name": "launch",
    "default": "auto",
    "flag": "--launch"
  },
  "replaces_entrypoint": {
    "name": "replaces_entrypoint",
    "default": true,
    "flag": "--keep-entrypoint",
    "means": "false"
  },
  "command": {
    "name": "command"
  },
  "arguments": {
    "name": "arguments"
  },
  "worker_command": {
    "name": "worker_command"
  },
  "workers": {
    "name": "workers",
    "default": 0,
    "flag": "--workers"
  },
  "slots_per_worker": {
    "name": "slots_per_worker",
    "default": 1,
    "flag": "--slots-per-worker"
  },
  "resources": {
    "name": "resources",
    "fields": {
      "gpus": {
        "name": "gpus",
        "default": 0,
        "flag": "--gpus"
      },
      "gpu_share": {
        "name": "gpu_share",
        "default": 0,
        "flag": "--gpu-share"
      },
      "gpu_memory_bytes": {
        "name": "gpu_memory",
        "default": 0,
        "flag": "--gpu-memory"
      },
      "cpus": {
        "name": "cpus",
        "default": 0,
        "flag": "--cpus"
      },
      "memory_bytes": {
        "name": "memory",
        "default": 0,
        "flag": "--memory"
      }
    }
  },
  "leader": {
    "name": "leader",
    "fields": {
      "image": {
        "name": "image"
      },
      "user": {
        "name": "user"
      },
      "registry": {
        "name": "registry",
        "fields": {
          "server": {
            "name": "server"
          },
          "username": {
            "name": "username"
          },
          "secret": {
            "name": "secret"
          }
        }
      },
      "command": {
        "name": "command"
      },
      "arguments": {
        "name": "arguments"
      },
      "resources": {
        "name": "resources",
        "fields": {
          "gpus": {
            "name": "gpus",
            "default": 0
          },
          "gpu_share": {
            "name": "gpu_share",
            "default": 0
          },
          "gpu_memory_bytes": {
            "name": "gpu_memory",
            "default": 0
          },
          "cpus": {
            "name": "cpus",
            "default": 0
          },
          "memory_bytes": {
            "name": "memory",
            "default": 0
          }
        }
      },
      "environment": {
        "name": "environment",
        "map": true
      }
    }
  },
  "leader_slots": {
    "name": "leader_slots",
    "default": 0
  },
  "chief_is_worker": {
    "name": "chief_is_worker",
    "default": false,
    "flag": "--chief-is-worker",
    "means": "true"
  },
  "success": {
    "name": "success",
    "default": "leader",
    "flag": "--success"
  },
  "allow_launcher_only": {
    "name": "allow_launcher_only",
    "default": false,
    "flag": "--allow-launcher-only",
    "means": "true"
  },
  "parameter_servers": {
    "name": "parameter_servers",
    "default": 0,
    "flag": "--parameter-servers"
  },
  "parameter_server": {
    "name": "parameter_server",
    "flag": "--parameter-server-command",
    "fields": {
      "image": {
        "name": "image"
      },
      "user": {
        "name": "user"
      },
      "registry": {
        "name": "registry",
        "fields": {
          "server": {
            "name": "server"
          },
          "username": {
            "name": "username"
          },
          "secret": {
            "name": "secret"
          }
        }
      },
      "command": {
        "name": "command"
      },
      "arguments": {
        "name": "arguments"
      },
      "resources": {
        "name": "resources",
        "fields": {
          "gpus": {
            "name": "gpus",
            "default": 0
          },
          "gpu_share": {
            "name": "gpu_share",
            "default": 0
          },
          "gpu_memory_bytes": {
            "name": "gpu_memory",
            "default": 0
          },
          "cpus": {
            "name": "cpus",
            "default": 0
          },
          "memory_bytes": {
            "name": "memory",
            "default": 0
          }
        }
      },
      "environment": {
        "name": "environment",
        "map": true
      }
    }
  },
  "evaluators": {
    "name": "evaluators",
    "default": 0,
    "flag": "--evaluators"
  },
  "evaluator": {
    "name": "evaluator",
    "flag": "--evaluator-command",
    "fields": {
      "image": {
        "name": "image"
      },
      "user": {
        "name": "user"
      },
      "registry": {
        "name": "registry",
        "fields": {
          "server": {
            "name": "server"
          },
          "username": {
            "name": "username"
          },
          "secret": {
            "name": "secret"
          }
        }
      },
      "command": {
        "name": "command"
      },
      "arguments": {
        "name": "arguments"
      },
      "resources": {
        "name": "resources",
        "fields": {
          "gpus": {
            "name": "gpus",
            "default": 0
          },
          "gpu_share": {
            "name": "gpu_share",
            "default": 0
          },
          "gpu_memory_bytes": {
            "name": "gpu_memory",
            "default": 0
          },
          "cpus": {
            "name": "cpus",
            "default": 0
          },
          "memory_bytes": {
            "name": "memory",
            "default": 0
          }
        }
      },
      "environment": {
        "name": "environment",
        "map": true
      }
    }
  },
  "volumes": {
    "name": "volumes",
    "flag": "--volume",
    "fields": {
      "kind": {
        "name": "kind"
      },
      "source": {
        "name": "source"
      },
      "target": {
        "name": "target"
      },
      "read_only": {
        "name": "read_only",
        "default": false
      }
    }
  },
  "held": {
    "name": "held",
    "default": false,
    "flag": "--hold",
    "means": "true"
  },
  "input": {
    "name": "input",
    "default": false,
    "flag": "--stdin",
    "means": "true"
  },
  "terminal": {
    "name": "terminal",
    "default": false,
    "flag": "--tty",
    "means": "true"
  },
  "keep_for_ms": {
    "name": "keep_for",
    "flag": "--keep-for"
  },
  "labels": {
    "name": "labels",
    "flag": "--label",
    "map": true
  },
  "annotations": {
    "name": "annotations",
    "map": true
  },
  "scheduling": {
    "name": "scheduling",
    "fields": {
      "purpose": {
        "name": "purpose",
        "default": "train"
      },
      "priority": {
        "name": "priority",
        "flag": "--priority"
      },
      "preemptible": {
        "name": "preemptible",
        "flag": "--preemptible",
        "means": "true"
      },
      "min_workers": {
        "name": "min_workers",
        "flag": "--min-workers"
      },
      "resize": {
        "name": "resize",
        "default": "auto",
        "flag": "--resize"
      },
      "node_pools": {
        "name": "node_pools",
        "flag": "--node-pool"
      },
      "gpu_models": {
        "name": "gpu_models",
        "flag": "--gpu-model"
      },
      "packing": {
        "name": "packing",
        "default": "auto",
        "flag": "--packing"
      },
      "required_topology": {
        "name": "required_topology",
        "flag": "--topology"
      },
      "preferred_topology": {
        "name": "preferred_topology",
        "flag": "--prefer-topology"
      },
      "time_limit_ms": {
        "name": "time_limit",
        "flag": "--time-limit"
      },
      "retries": {
        "name": "retries",
        "default": 0,
        "flag": "--retries"
      },
      "retry_rules": {
        "name": "retry_rules",
        "flag": "--on-exit",
        "fields": {
          "exit_code": {
            "name": "exit_code"
          },
          "last_exit_code": {
            "name": "last_exit_code"
          },
          "log_pattern": {
            "name": "log_pattern"
          },
          "action": {
            "name": "action"
          }
        }
      },
      "begin": {
        "name": "begin",
        "flag": "--begin"
      },
      "singleton": {
        "name": "singleton",
        "flag": "--singleton"
      }
    }
  },
  "after": {
    "name": "after",
    "flag": "--after",
    "fields": {
      "job": {
        "name": "job"
      },
      "condition": {
        "name": "condition",
        "default": "ok"
      },
      "by_member": {
        "name": "by_member",
        "default": false
      }
    }
  },
  "array": {
    "name": "array",
    "flag": "--array",
    "fields": {
      "indexes": {
        "name": "indexes"
      },
      "lines": {
        "name": "lines"
      },
      "max_running": {
        "name": "max_running",
        "default": 0
      },
      "max_failures": {
        "name": "max_failures"
      }
    }
  },
  "environment": {
    "name": "environment",
    "flag": "--env",
    "map": true
  },
  "secrets": {
    "name": "secrets",
    "flag": "--secret",
    "fields": {
      "name": {
        "name": "name"
      },
      "variable": {
        "name": "variable"
      },
      "file": {
        "name": "file"
      }
    }
  },
  "folder": {
    "name": "folder",
    "flag": "--folder"
  },
  "sandbox": {
    "name": "sandbox",
    "default": "bubblewrap",
    "flag": "--sandbox"
  },
  "start_timeout_ms": {
    "name": "start_timeout",
    "default": 30000,
    "flag": "--start-timeout"
  },
  "grace_ms": {
    "name": "grace",
    "default": 10000,
    "flag": "--grace"
  }
};
