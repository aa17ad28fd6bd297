"""What selectors say of realistic devices, library by library.

True and False are verdicts; a text is a part of the error. `A`, `C` and `N` stand for
the attributes and capacities of the driver and of `dra.net`: lines stay short.
"""

from __future__ import annotations

from contracts.device import Device
from tests.builders import Version, device

DRIVER = "gpu.nvidia.com"
GPU: Device = device(
    "gpu-3",
    attributes={
        "type": "gpu",
        "productName": "NVIDIA A100-SXM4-80GB",
        "brand": "Nvidia",
        "architecture": "Ampere",
        "uuid": "GPU-5cf1c0e2-8a10-4f2b-9f6b-1b1dd3a3e7d1",
        "minor": 3,
        "cudaComputeCapability": Version("8.0.0"),
        "driverVersion": Version("580.126.9"),
        "cudaDriverVersion": Version("13.0.0-rc.1+build.7"),
        "ecc": True,
        "temperatureLimit": -5,
        "links": (1, 2, 5),
        "rails": ("rail-0", "rail-3"),
        "firmwares": (Version("1.2.0"), Version("1.10.0")),
        "resource.kubernetes.io/pcieRoot": "pci0000:10",
        "resource.kubernetes.io/pciBusID": "0000:17:00.0",
        "resource.kubernetes.io/numaNode": 0,
        "dra.net/rdma": True,
        "dra.net/ipv4": "10.4.1.17/24",
        "dra.net/ip": "10.4.1.17",
        "dra.net/endpoint": "https://user@fabric.example.com:8443/api/v1?rail=3&q=a%20b",
        "dra.net/ifName": "eth3",
    },
    capacity={"memory": "80Gi", "multiprocessors": 108, "dra.net/bandwidth": "400G"},
    allow_multiple_allocations=True,
)


def spelled(expression: str) -> str:
    """Write a case's expression out."""
    words = expression.split("`")
    for index in range(1, len(words), 2):
        words[index] = {
            "A": f'device.attributes["{DRIVER}"]',
            "C": f'device.capacity["{DRIVER}"]',
            "N": 'device.attributes["dra.net"]',
        }[words[index]]
    return "".join(words)


Expected = bool | str
STANDARD: dict[str, Expected] = {
    "true": True,
    "false": False,
    'device.driver == "gpu.nvidia.com"': True,
    'device.driver.endsWith(".nvidia.com") && `A`.type == "gpu"': True,
    "`A`.minor > 2 && `A`.minor <= 3 && `A`.minor % 2 == 1": True,
    "`A`.minor < 3.5 && `A`.minor == 3.0 && `A`.minor >= 3u": True,
    "1 < 1.5 && 2u > 1.5 && 2.0 >= 2": True,
    "`C`.memory.asApproximateFloat() > 10": True,
    "-`A`.temperatureLimit == 5": True,
    "`A`.ecc": True,
    "!`A`.ecc": False,
    '`A`.brand in ["Nvidia", "AMD"]': True,
    "1 in `A`.links && !(3 in `A`.links)": True,
    "`A`.links.size() == 3 && size(`A`.rails) == 2": True,
    '`A`.rails[1] == "rail-3"': True,
    "`A`.links.exists(l, l > 4)": True,
    "`A`.links.all(l, l > 1)": False,
    "`A`.links.exists_one(l, l == 2)": True,
    "`A`.links.filter(l, l < 3) == [1, 2]": True,
    "`A`.links.map(l, l * 2) == [2, 4, 10]": True,
    "`A`.links.map(l, l > 1, l * 2) == [4, 10]": True,
    '`A`.uuid.matches("^GPU-[0-9a-f-]{36}$")': True,
    '`A`.uuid.matches("(")': "CEL runtime error",
    'string(`A`.minor) == "3" && int("3") == `A`.minor && double("1.5") == 1.5': True,
    'uint("3") == 3u && bool("true") && string(true) == "true"': True,
    'string(1.5) == "1.5" && string(b"ab") == "ab" && bytes("a") == b"a"': True,
    'duration("90s") == duration("1m30s") && duration("90s").getMinutes() == 1': True,
    'timestamp("2026-01-02T00:00:00Z").getFullYear() == 2026': True,
    'timestamp("2026-01-02T00:00:00Z").getHours("Asia/Tokyo") == 9': True,
    "type(`A`.minor) == int && type(`A`.brand) == string": True,
    '`A`.nope == 1 || `A`.type == "gpu"': True,
    "`A`.nope == 1 && false": False,
    "`A`.nope == 1 || false": "CEL runtime error: no such key: nope",
    "`A`.links[9] == 1": "index out of bounds: 9",
    "`A`.minor / 0 == 1": "division by zero",
    "`A`.minor + 9223372036854775807 > 0": "integer overflow",
    "`A`.minor + 'x' == 'y'": "no such overload",
    '`A`.minor == "3"': False,
    "`A`.minor == 3 // the fourth": True,
    "(`A`.minor == 3 ? `A`.ecc : false)": True,
    r'r"\d" == "\\d" && """a"b""" == "a\"b"': True,
}
DEVICE: dict[str, Expected] = {
    'device.attributes["nope.example.com"].size() == 0': True,
    'device.capacity["nope.example.com"].size() == 0': True,
    'device.attributes["nope.example.com"].x == 1': "no such key: x",
    'device.attributes["dra" + ".nope"].size() == 0': True,
    'device.attributes["dra" + ".net"].ifName == "eth3"': True,
    '"nope.example.com" in device.attributes': False,
    '"dra.net" in device.attributes && "dra.net" in device.capacity': True,
    'device.attributes.exists(d, d == "dra.net")': True,
    "device.attributes.size() == 3": True,
    "device.attributes.all(d, m, m.size() > 0)": True,
    'device.attributes[?"nope"].hasValue()': True,
    'device.attributes[?"dra.net"].?nope.orValue("x") == "x"': True,
    'device.attributes[?"dra.net"].?ifName.orValue("x") == "eth3"': True,
    "device.attributes.nope.size() == 0": True,
    "`A`.type == device.attributes[device.driver].type": True,
    'has(`A`.type) && !has(`A`.nope) && !has(device.attributes["no"].x)': True,
    "has(device.driver) && has(device.attributes)": True,
    '"type" in `A` && !("nope" in `A`)': True,
    '"pcieRoot" in device.attributes["resource.kubernetes.io"]': True,
    '`A`["type"] == "gpu"': True,
    "`A`.type == .device.attributes['gpu.nvidia.com'].type": True,
    "device.allowMultipleAllocations": True,
    "`A`.type": "could not be converted to bool",
    "`A`.links": "could not be converted to bool",
    "`A`.driverVersion": "could not be converted to bool",
    "device.driver": "must evaluate to bool or the unknown type",
    "device.attributes": "must evaluate to bool or the unknown type",
    "null": "must evaluate to bool or the unknown type",
    "dyn(null)": "could not be converted to bool",
    "`A`.minor == 3 ? dyn(null) : dyn(true)": "could not be converted to bool",
    "[dyn(null), dyn(true)][0]": "could not be converted to bool",
    "[dyn(null), true][0]": "expected type 'dyn' but found 'bool'",
    '[1, "a"].size() == 2': "expected type 'int' but found 'string'",
    '{"a": 1, "b": dyn(1)}.a == 1': "expected type 'int' but found 'dyn'",
    "nope": "undeclared reference to 'nope'",
    "nope(1)": "undeclared reference to 'nope'",
    "device.nope == 1": "CEL compile error",
    "device.driver ==": "CEL compile error",
    "": "CEL compile error",
    "true) || (true": "CEL compile error",
    "'unterminated": "CEL compile error",
}
STRINGS: dict[str, Expected] = {
    '`A`.brand.lowerAscii() == "nvidia" && `A`.brand.upperAscii() == "NVIDIA"': True,
    '`A`.productName.split("-")[1] == "SXM4"': True,
    '`A`.productName.split("-", 2).size() == 2': True,
    '["a", "b"].join("-") == "a-b" && ["a", "b"].join() == "ab"': True,
    '`A`.brand.charAt(0) == "N"': True,
    '`A`.brand.indexOf("i") == 2 && `A`.brand.lastIndexOf("i") == 4': True,
    '`A`.brand.indexOf("i", 3) == 4 && "abcb".lastIndexOf("b", 2) == 1': True,
    '"abc".indexOf("z") == -1': True,
    '"abc".indexOf("a", 9) == 0': "index out of range: 9",
    '`A`.brand.replace("N", "n") == "nvidia"': True,
    '"aaa".replace("a", "b", 2) == "bba"': True,
    '`A`.brand.substring(1) == "vidia" && `A`.brand.substring(0, 2) == "Nv"': True,
    '"  x ".trim() == "x"': True,
    '"%s-%d".format(["a", 3]) == "a-3"': True,
    '"%.1f|%x|%b".format([1.25, 255, true]) == "1.2|ff|1"': True,
    r'strings.quote("a\"b") == "\"a\\\"b\""': True,
    '"abc".reverse() == "cba"': "CEL compile error",
}
LISTS: dict[str, Expected] = {
    "[1, 2, 3].slice(0, 2) == [1, 2]": True,
    "[[1], [2, 3]].flatten() == [1, 2, 3]": True,
    "[1, 1, 2].distinct() == [1, 2]": True,
    "lists.range(3) == [0, 1, 2]": True,
    "[1, 2].reverse() == [2, 1]": True,
    "[3, 1].sort() == [1, 3]": True,
    '["bb", "a"].sortBy(s, s.size()) == ["a", "bb"]': True,
    "`A`.links.isSorted() && ![2, 1].isSorted()": True,
    "`A`.links.sum() == 8 && [1.5, 1.5].sum() == 3.0": True,
    '[duration("1s"), duration("2s")].isSorted()': True,
    '[duration("1s")].sum() == duration("1s")': "no such overload",
    '["a"].sum() == "a"': "CEL runtime error",
    "`A`.links.min() == 1 && `A`.links.max() == 5": True,
    '`A`.rails.max() == "rail-3"': True,
    "dyn([]).min() == 1": "min called on empty list",
    "`A`.links.indexOf(2) == 1 && [1, 2, 1].lastIndexOf(1) == 2": True,
    '["a"].indexOf("b") == -1': True,
    "[true].indexOf(true) == 0": True,
}
INCLUDES: dict[str, Expected] = {
    "`A`.links.includes(5)": True,
    "`A`.links.includes(4)": False,
    "`A`.minor.includes(3)": True,
    '`A`.rails.includes("rail-0")': True,
    '`A`.brand.includes("Nvidia")': True,
    '`A`.brand.includes("Nvi")': False,
    "`A`.ecc.includes(true)": True,
    '`A`.firmwares.includes(semver("1.10.0"))': True,
    '`A`.driverVersion.includes(semver("580.126.9"))': True,
    "lists.range(60).includes(50)": "more than 48 elements",
}
SETS: dict[str, Expected] = {
    'sets.contains(`A`.rails, ["rail-0"])': True,
    "sets.equivalent([1, 2, 2], [2, 1])": True,
    "sets.intersects(`A`.links, [4, 5])": True,
    "sets.intersects(`A`.links, [4])": False,
}
OPTIONALS: dict[str, Expected] = {
    '`A`.?nope.orValue("x") == "x"': True,
    "`A`.?minor.orValue(0) == 3": True,
    '`A`[?"minor"].hasValue() && !`A`[?"nope"].hasValue()': True,
    "`A`.?minor.optMap(m, m + 1).value() == 4": True,
    "`A`.?minor.optFlatMap(m, optional.of(m)).hasValue()": True,
    "`A`.?nope.or(`A`.?minor).value() == 3": True,
    "optional.none().hasValue()": False,
    'optional.ofNonZeroValue("").hasValue()': False,
    "`A`.?nope.value() == 1": "optional",
    '{?"a": `A`.?minor}.size() == 1 && [?`A`.?nope].size() == 0': True,
}
COMPREHENSIONS: dict[str, Expected] = {
    "`A`.links.all(i, l, l > i)": True,
    "`A`.links.exists(i, l, i == 2 && l == 5)": True,
    "[1, 2].existsOne(i, v, v == 2)": True,
    "`A`.links.transformList(i, l, i + l) == [1, 3, 7]": True,
    "`A`.transformMap(name, value, 1).size() == 1": "transformMap",
    "`A`.exists(name, value, name == 'minor' && value == 3)": True,
    "cel.bind(m, `A`.productName, m.contains('A100') && m.contains('80GB'))": True,
    "cel.bind(a, `A`, a.minor == 3 && a.ecc)": True,
}
REGEX: dict[str, Expected] = {
    '`A`.productName.find("[0-9]+GB") == "80GB"': True,
    '`A`.productName.find("H100") == ""': True,
    '"a1b22".findAll("[0-9]+") == ["1", "22"]': True,
    '"a1b22".findAll("[0-9]+", 1) == ["1"]': True,
    '"a".find("(") == ""': "Illegal regex",
}
QUANTITIES: dict[str, Expected] = {
    '`C`.memory.compareTo(quantity("80Gi")) == 0': True,
    '`C`.memory.isGreaterThan(quantity("40Gi"))': True,
    '`C`.memory.isLessThan(quantity("40Gi"))': False,
    '`C`.memory == quantity("81920Mi")': True,
    '`C`.memory >= quantity("40Gi")': "CEL compile error",
    "`C`.multiprocessors.isInteger() && `C`.multiprocessors.asInteger() == 108": True,
    '`C`.memory.add(quantity("1Gi")) == quantity("81Gi")': True,
    "`C`.memory.sub(1).asInteger() == 85899345919": True,
    '`C`.memory.add(1).compareTo(quantity("80Gi")) == 1': True,
    'sign(`C`.memory) == 1 && sign(quantity("-1")) == -1': True,
    'quantity("500m").isInteger()': False,
    'quantity("500m").asInteger() == 0': "cannot convert value to integer",
    'quantity("500m").asApproximateFloat() == 0.5': True,
    'isQuantity("5Gi") && !isQuantity("five")': True,
    'quantity("five") == quantity("5")': "is not a quantity",
    'device.capacity["dra.net"].bandwidth.isGreaterThan(quantity("100G"))': True,
    "`C`.nope.isInteger()": "no such key: nope",
    "[quantity('1')].exists(q, q == quantity('1000m'))": True,
    "`A`.minor.isLessThan(quantity('1'))": "no such overload",
}
SEMVERS: dict[str, Expected] = {
    '`A`.driverVersion.isGreaterThan(semver("580.99.0"))': True,
    '`A`.driverVersion.isLessThan(semver("580.126.10"))': True,
    '`A`.driverVersion.compareTo(semver("580.126.9")) == 0': True,
    '`A`.cudaDriverVersion == semver("13.0.0-rc.1")': True,
    '`A`.cudaDriverVersion.isLessThan(semver("13.0.0"))': True,
    "`A`.driverVersion.major() == 580 && `A`.driverVersion.minor() == 126": True,
    "`A`.driverVersion.patch() == 9": True,
    'semver("v01.2", true) == semver("1.2.0")': True,
    'semver("1.0.0-alpha.1").isLessThan(semver("1.0.0-alpha.beta"))': True,
    'isSemver("1.2.3") && !isSemver("v1.2") && isSemver("v1.2", true)': True,
    'semver("1") == semver("1")': "is no semantic version",
    'semver("01.2.3") == semver("1.2.3")': "is no semantic version",
    '`A`.driverVersion.compareTo(quantity("1")) == 0': "no such overload",
}
NETWORK: dict[str, Expected] = {
    'url(`N`.endpoint).getScheme() == "https"': True,
    'url(`N`.endpoint).getHost() == "fabric.example.com:8443"': True,
    'url(`N`.endpoint).getHostname() == "fabric.example.com"': True,
    'url(`N`.endpoint).getPort() == "8443"': True,
    'url(`N`.endpoint).getEscapedPath() == "/api/v1"': True,
    'url(`N`.endpoint).getQuery() == {"rail": ["3"], "q": ["a b"]}': True,
    'url("https://[::1]:80/").getHostname() == "::1"': True,
    'isURL("https://a.b") && isURL("/path") && !isURL("a b") && !isURL("x/y")': True,
    'url("no url") == url("/a")': "URL parse error",
    'ip(`N`.ip).family() == 4 && ip("::1").family() == 6': True,
    'isIP("10.0.0.1") && !isIP("10.0.0.256") && !isIP("::ffff:1.2.3.4")': True,
    'ip("127.0.0.1").isLoopback() && ip("0.0.0.0").isUnspecified()': True,
    'ip("fe80::1").isLinkLocalUnicast() && ip("ff02::1").isLinkLocalMulticast()': True,
    'ip(`N`.ip).isGlobalUnicast() && !ip("224.0.0.1").isGlobalUnicast()': True,
    'ip.isCanonical("::1") && !ip.isCanonical("0:0::1")': True,
    'ip("::1") == ip("0:0::1") && string(ip("0:0::1")) == "::1"': True,
    'ip("nope") == ip("::1")': "parse error",
    'cidr("10.4.0.0/16").containsIP(`N`.ip)': True,
    'cidr("10.4.0.0/16").containsIP(ip("10.5.0.1"))': False,
    "cidr('10.4.0.0/16').containsCIDR(`N`.ipv4)": True,
    "cidr('10.4.0.0/16').containsCIDR(cidr('10.0.0.0/8'))": False,
    'cidr(`N`.ipv4).masked() == cidr("10.4.1.0/24")': True,
    'cidr(`N`.ipv4).ip() == ip("10.4.1.17")': True,
    "cidr(`N`.ipv4).prefixLength() == 24": True,
    'string(cidr(`N`.ipv4)) == "10.4.1.17/24"': True,
    'isCIDR("10.0.0.0/8") && !isCIDR("10.0.0.0") && !isCIDR("10.0.0.0/40")': True,
}
FORMATS: dict[str, Expected] = {
    '!format.dns1123Label().validate("eth0").hasValue()': True,
    'format.dns1123Label().validate("Eth0").hasValue()': True,
    'format.dns1123Label().validate("Eth0").value().size() == 1': True,
    '!format.named("dns1123Subdomain").value().validate("a.b").hasValue()': True,
    'format.named("nope").hasValue()': False,
    '!format.dns1035Label().validate("a1").hasValue()': True,
    'format.dns1035Label().validate("1a").hasValue()': True,
    '!format.qualifiedName().validate("example.com/Name_1").hasValue()': True,
    'format.qualifiedName().validate("/x").hasValue()': True,
    '!format.labelValue().validate("").hasValue()': True,
    '!format.dns1123LabelPrefix().validate("eth-").hasValue()': True,
    "!format.uuid().validate(`A`.uuid.substring(4)).hasValue()": True,
    "!format.uri().validate(`N`.endpoint).hasValue()": True,
    '!format.byte().validate("aGVsbG8=").hasValue()': True,
    'format.byte().validate("?").hasValue()': True,
    '!format.date().validate("2026-02-28").hasValue()': True,
    'format.date().validate("2026-02-30").hasValue()': True,
    '!format.datetime().validate("2026-02-28T10:00:00Z").hasValue()': True,
}
LIBRARIES = {
    "standard": STANDARD,
    "device": DEVICE,
    "strings": STRINGS,
    "lists": LISTS,
    "includes": INCLUDES,
    "sets": SETS,
    "optionals": OPTIONALS,
    "comprehensions": COMPREHENSIONS,
    "regex": REGEX,
    "quantities": QUANTITIES,
    "semvers": SEMVERS,
    "network": NETWORK,
    "formats": FORMATS,
}
CASES: list[tuple[str, Expected]] = [
    (spelled(expression), expected)
    for library in LIBRARIES.values()
    for expression, expected in library.items()
]


def costly_selector(driver: str) -> str:
    """Write a selector that takes some 0.03 s on each device, by its uuid."""
    ten = "[0,1,2,3,4,5,6,7,8,9]"
    return (
        f'"GPU-" + device.attributes["{driver}"].uuid != "" && '
        f"{ten}.all(a, {ten}.all(b, {ten}.all(c, [0,1,2,3,4,5,6,7].all(d, "
        "quantity('1').isInteger()))))"
    )
