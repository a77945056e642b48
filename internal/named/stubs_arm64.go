package named

const stubBytes = 20
