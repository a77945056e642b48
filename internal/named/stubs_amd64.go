package named

const stubBytes = 16
