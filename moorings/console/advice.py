"""Advice for gangs that wait, by the rule of their reason.

General advice, by what a rule means; which change would help this very gang is found
out by solving again (`changes.py`). Pure.
"""

from __future__ import annotations

from contracts.allocation import Rule

ADVICE: dict[Rule, str] = {
    Rule.NO_CANDIDATE: "No node has so many such devices, taken or not. Ask for fewer "
    "in a pod, loosen the selectors, or add nodes that have them.",
    Rule.DISABLED: "The devices need a feature gate that the cluster or the node does "
    "not have. Switch it on, or ask for devices that need none.",
    Rule.TAKEN: "Others hold the devices. The gang is tried again as soon as enough of "
    "them are free: end a gang that holds some, add nodes, or ask for less.",
    Rule.TAINTED: "Sick or tainted devices are in the way. Repair them, or tolerate "
    "their taints in the request.",
    Rule.CONSTRAINT: "Enough devices are free, but no free ones belong together as the "
    "constraint wants. Loosen it, or free devices that share the attribute.",
    Rule.ALL_DEVICES: "The request is for all devices of a node. It needs a node where "
    "none is held or sick.",
    Rule.JOINT: "It does not fit together. Fewer or smaller pods or more nodes would "
    "do.",
    Rule.GANG_TOPOLOGY: "The free devices lie in more domains than the gang allows, or "
    "in fewer. Choose another level of the topology or only prefer it, ask for less, "
    "or free devices where others are free.",
    Rule.OUTRANKED: "Gangs of higher priority or age get the devices first. Wait, "
    "raise its priority, or add nodes.",
    Rule.SELECTOR_ERROR: "A selector does not compile or fails on a device. Correct "
    "the expression in the claim or in the DeviceClass.",
    Rule.UNEVALUATED: "Nothing is to be done: its selectors are being evaluated.",
    Rule.DEVICE_QUOTA: "The namespace may hold no more devices. End a gang of the "
    "namespace, or have its quota raised.",
    Rule.RESOURCE_QUOTA: "The ResourceQuota that is named leaves too little. Ask for "
    "less, delete claims or pods of the namespace, or have it raised.",
    Rule.GANG_QUOTA: "Too many gangs of the namespace wait. Cancel some, or have the "
    "quota raised.",
    Rule.QUEUED: "Nothing is to be done: it is tried when its turn comes.",
    Rule.CLAIM_SHARED: "A ResourceClaim is one allocation, and another gang has it or "
    "asks for it first. Put the pods into one gang, or give each its own by a "
    "template.",
    Rule.UNKNOWN_CLASS: "Create the DeviceClass, or correct its name in the request.",
    Rule.UNKNOWN_TEMPLATE: "Create the ResourceClaimTemplate, or correct its name.",
    Rule.UNKNOWN_CLAIM: "Create the ResourceClaim, or correct its name.",
    Rule.NOT_MODELLED: "This version cannot decide the field that is named. Leave it "
    "out, or leave the pod to kube-scheduler.",
    Rule.INVALID: "The object breaks a rule of the API. Delete it, correct the field "
    "that is named, and create it again.",
    Rule.NOT_PROVEN: "No answer was found within the limits. It is tried again, alone; "
    "a smaller gang is easier.",
    Rule.TOO_MANY_DEVICES: "A claim may hold 32 devices. Ask with several claims.",
    Rule.NODE: "Nodes with the devices are away or not ready. Bring them back.",
    Rule.NODE_TAINTED: "Nodes with the devices are cordoned or tainted. Uncordon them, "
    "or tolerate the taints.",
    Rule.NODE_SELECTION: "Name, labels and affinity of the pods leave out the nodes "
    "that have the devices. Loosen them, or label nodes.",
    Rule.NODE_FEATURES: "The kubelets of the nodes with the devices do not declare "
    "what the pods need. Switch the feature on there, or ask for less of kubelet.",
    Rule.NODE_RESOURCES: "Nodes with the devices lack CPU, memory or the like. Ask "
    "for less of it, or end pods that use it there.",
    Rule.NODE_PORTS: "Other pods have the host ports. Ask for other ports.",
    Rule.POD_NEAR: "The pods must be near others, where nothing is free. Loosen the "
    "affinity, or free devices there.",
    Rule.POD_APART: "Other pods keep them away. Loosen the anti-affinity, or add "
    "nodes.",
    Rule.POD_SPREAD: "They would not be spread evenly enough. Allow a larger skew.",
    Rule.GROWING: "Its gang runs without it. It waits for room: free devices, or add "
    "nodes.",
    Rule.WITHDRAWN: "Somebody else was faster with the claims. It is decided again.",
}
OTHERWISE = "The reason says what is missing."


def advise(rule: str) -> str:
    """Return what helps in general against a rule that says no."""
    try:
        return ADVICE.get(Rule(rule), OTHERWISE)
    except ValueError:
        return OTHERWISE
