"""slurm.conf and gres.conf of the cluster that tests start (slurm_cluster.py)."""

import socket

# All intervals and time limits of Slurm are as short as possible. Other settings have Slurm's defaults.
_SLURM = """\
ClusterName=muster
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root

AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/state/jwt.key
CredType=cred/munge

StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdSpoolDir={folder}/spool/%n
SlurmdPidFile={folder}/spool/%n.pid
SlurmdLogFile={folder}/log/%n.log
TmpFS={folder}/session/%n

ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=256
GresTypes=gpu
SlurmdParameters=config_overrides
ReturnToService=2

SlurmctldTimeout=10
SlurmdTimeout=5
MessageTimeout=10
TCPTimeout=2
KillWait=2
UnkillableStepTimeout=120
BatchStartTimeout=10
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE

{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=UNLIMITED State=UP PriorityTier=1
PartitionName=urgent Nodes=ALL MaxTime=UNLIMITED State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=closed Nodes=ALL MaxTime=UNLIMITED State=UP PriorityTier=1 AllowAccounts=chosen
"""


def slurm_settings(folder, controller_port, node_ports, cpus, memory_mb, gpus):
    """The text of slurm.conf. `node_ports`: name of a node -> its port."""
    host = socket.gethostname().partition(".")[0]
    gres = f" Gres=gpu:{gpus}" if gpus else ""
    nodes = "\n".join(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus}"
                      f" RealMemory={memory_mb}{gres}" for node, port in node_ports.items())
    return _SLURM.format(folder=folder, host=host, controller_port=controller_port, nodes=nodes)


def gpu_settings(folder, nodes, count):
    """The text of gres.conf. Each GPU has a file, because Slurm 22.05 ignores GPUs without a file."""
    if not count:
        return ""
    return f"NodeName={','.join(nodes)} Name=gpu File={folder}/gpu/nvidia[0-{count - 1}]\n"
